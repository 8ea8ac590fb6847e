// Names of layers without their numbers: what is alike in them has one name.
#pragma once

#include <string>

namespace weft {

// Numbers of layers as stars: "h12.qkv.weight" and "blocks.3.gelu" become "h*.qkv.weight" and "blocks.*.gelu", which
// are also patterns that match them. A number counts where a dot follows it.
std::string layerPattern(const std::string& name);

}  // namespace weft
