"""The ICP finder: from a company and its best customers to companies like those."""
