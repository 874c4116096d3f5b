"""A study of every layer on tasks of many kinds, from which docs/choosing.md is written."""
