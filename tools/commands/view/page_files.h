// The parts of the page, put into the program by embed.cmake.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft::tools {

// File names without their directory, and contents; page.html first.
const std::vector<std::pair<std::string, std::string>>& pageFiles();

}  // namespace weft::tools
