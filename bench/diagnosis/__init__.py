"""Diagnosis: generated incidents with a known cause, and the speed of its events."""
