// A target needs a source; see WeftPrecompiled.cmake.
