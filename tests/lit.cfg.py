# Configuration of lit: every tests/**.mlir runs its RUN lines with the tools of this build.
import os

import lit.formats

config.name = "weft"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".mlir"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.weft_lit_directory

# weft-opt, FileCheck and not, by name.
config.environment["PATH"] = os.pathsep.join(
    [config.weft_tools_directory, config.llvm_tools_directory, config.environment.get("PATH", "")]
)
