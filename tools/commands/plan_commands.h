// `weft stats` and `weft explain`: what a plan file holds.
#pragma once

namespace weft::tools {

// weft stats PLAN [--json]
int statsCommand(int argc, char** argv);
// weft explain PLAN [--json]
int explainCommand(int argc, char** argv);

}  // namespace weft::tools
