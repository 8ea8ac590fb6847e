// Compiled once with the shared precompiled header; see ir/CMakeLists.txt.
