"""Getting language servers: `install` carries out an entry's recipes, each way of doing so in a module of its own.

A way builds into a folder that nobody else sees; what was built is run once, and only then moved to its place.
"""
