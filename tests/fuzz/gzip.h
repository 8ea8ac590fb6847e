// gzip in memory, for seeds and mutations of compressed files.
#pragma once

#include <optional>
#include <string>

namespace weft::fuzz {

std::string compressed(const std::string& bytes);
// Nothing where the bytes are no gzip stream or hold more than `most`.
std::optional<std::string> decompressed(const std::string& bytes, size_t most);

}  // namespace weft::fuzz
