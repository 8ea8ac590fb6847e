// `weft layout`: what every rank holds of a tensor under a layout.
#pragma once

namespace weft::tools {

int layoutCommand(int argc, char** argv);

}  // namespace weft::tools
