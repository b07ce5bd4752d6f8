"""Policies that change while the scheduler runs.

A file or a ConfigMap is followed; a text that is new is read, checked, compiled and tried, then put into force between two
decisions. One that is wrong in any way changes nothing. Every replica follows; only the one that may write tells the API server.
"""
