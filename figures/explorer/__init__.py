"""The explorer: one page on which finished runs can be asked anything, without a server."""
