"""Graph `icp_finder`: find companies that resemble a company's best customers."""
