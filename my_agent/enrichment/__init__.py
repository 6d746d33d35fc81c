"""Graph `enrichment`: the background job of the ICP finder. It enriches candidates one by one."""
