async def available(tenant): return []
async def call(tenant, name, arguments): raise AssertionError
