"""DefaultBinder: binds the pod through the API server's binding subresource; there is nothing to decide."""

from stowplan.plugins.plugin import Plugin

PLUGIN = Plugin("DefaultBinder", frozenset({"bind"}))
