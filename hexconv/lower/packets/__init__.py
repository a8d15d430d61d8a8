"""Packets of Hexagon instructions: read from assembly, judged by the published rules of stalls, and improved."""
