"""The tasks with a name: one class in one file each, and a table in papers.toml.

What a task is stands in docs/api/command-line.md; a user's own is the same.
"""
