// `weft plan`: searches a plan for a model without compiling it, for models and machines larger than this host.
#pragma once

namespace weft::tools {

int planCommand(int argc, char** argv);

}  // namespace weft::tools
