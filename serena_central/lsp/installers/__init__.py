"""Installers of language servers: `install` carries out an entry's recipes, one module per method.

Each method builds in a staging folder; the result is run once, and only then moved to its place.
"""
