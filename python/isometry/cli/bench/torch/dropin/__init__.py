"""Calls that people already make, beside the same in torch or in another package."""
