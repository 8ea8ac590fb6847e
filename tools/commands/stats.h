// `weft stats`: collectives, arithmetic and memory of a plan file.
#pragma once

namespace weft::tools {

// weft stats PLAN [--json]
int statsCommand(int argc, char** argv);

}  // namespace weft::tools
