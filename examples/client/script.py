"""No event loop of your own? The `_sync` methods are for scripts."""

from isthmus import Bridge

bridge = Bridge.from_env()
print(bridge.run_sync(None, "What is 12*7?").output)
