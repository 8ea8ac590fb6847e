// `weft explain`: each collective, each send between submeshes and each recomputed operator of a plan file: why, price.
#pragma once

namespace weft::tools {

// weft explain PLAN [--all] [--json]
//
// Entries that are equal but for the number of a layer are one (tools/analysis/fold_layers.h); --all prints each, and
// so does --json.
int explainCommand(int argc, char** argv);

}  // namespace weft::tools
