"""Installers of language servers: `install` carries out an entry's recipes, one module per method.

A way builds into a folder that nobody else sees; what was built is run once, and only then moved to its place.
"""
