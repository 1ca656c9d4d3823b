"""Runs every function of the themes given as arguments whose name has no leading underscore, and prints a line of JSON for each.

All in one process: importing LiteLLM takes seconds.
"""

import importlib
import inspect
import json
import sys
import traceback

for theme in sys.argv[1:]:
    module = importlib.import_module(theme)
    for name, check in inspect.getmembers(module, inspect.isfunction):
        if check.__module__ != theme or name.startswith("_"):
            continue
        try:
            check()
            error = None
        except Exception:
            error = traceback.format_exc()
        print(json.dumps({"theme": theme, "check": name, "error": error}), flush=True)
