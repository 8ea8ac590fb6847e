// Names of layers without their numbers: what is alike in them has one name.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace weft {

// Numbers of layers as stars: "h12.qkv.weight" and "blocks.3.gelu" become "h*.qkv.weight" and "blocks.*.gelu", which
// are also patterns that match them. A number counts where a dot follows it.
std::string layerPattern(const std::string& name);

// The pattern of a name where the same is `said` of all the `names` that it matches, by name, else the name itself.
std::string widestPattern(const std::string& name, const std::map<std::string, std::string>& said,
                          const std::vector<std::string>& names);

}  // namespace weft
