"""What tests of several kinds lean on."""
