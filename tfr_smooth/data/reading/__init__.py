"""Readers of arrays, tables and files, which return `Lists`."""
