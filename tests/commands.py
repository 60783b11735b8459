"""Every command of the project, by the name of its YAML."""

import importlib
import pkgutil

import scripts
from scripts.cli.command import Command

# no commands, and Gradio is an extra
PAGE = {"scripts.demo.access", "scripts.demo.page", "scripts.demo.server"}


def find_commands():
    names = {module.name for module in pkgutil.walk_packages(scripts.__path__, "scripts.")}
    for name in sorted(names - PAGE):
        for value in vars(importlib.import_module(name)).values():
            if isinstance(value, Command):
                yield value.config_name, value


COMMANDS = dict(find_commands())
