from typing import NamedTuple
class Passage(NamedTuple):
    document: str; section: str; quote: str
async def find(tenant, words): return []
