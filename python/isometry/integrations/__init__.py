"""Bridges to other packages, which are imported only where they are used."""
