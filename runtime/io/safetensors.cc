#include "runtime/io/safetensors.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "runtime/base/file_writer.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMaxHeader = 100'000'000;

const std::map<std::string, DType>& typeNames() {
  static const std::map<std::string, DType> kNames = {
      {"F32", DType::kF32}, {"F64", DType::kF64}, {"BF16", DType::kBF16}, {"F16", DType::kF16},
      {"I32", DType::kI32}, {"I64", DType::kI64}, {"BOOL", DType::kBool}};
  return kNames;
}

// Bytes per element of types that are legal in a file though Weft has no tensors of them.
const std::map<std::string, int64_t>& otherTypes() {
  static const std::map<std::string, int64_t> kSizes = {
      {"U8", 1}, {"I8", 1}, {"U16", 2}, {"I16", 2}, {"U32", 4}, {"U64", 8}, {"F8_E4M3", 1}, {"F8_E5M2", 1}, {"C64", 8}};
  return kSizes;
}

template <typename... Parts>
absl::Status bad(const std::string& path, const Parts&... parts) {
  return absl::DataLossError(absl::StrCat(path, ": ", parts...));
}

struct Range {
  int64_t begin;
  int64_t end;
  std::string name;
};

absl::StatusOr<std::vector<int64_t>> integers(const std::string& path, const std::string& name, const Json& json) {
  std::vector<int64_t> values;
  if (!json.is_array()) {
    return bad(path, "tensor '", name, "': a list of integers was expected, found ", json.dump());
  }
  for (const Json& value : json) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > (uint64_t{1} << 62)) {
      return bad(path, "tensor '", name, "': ", value.dump(), " is no size or offset");
    }
    values.push_back(static_cast<int64_t>(value.get<uint64_t>()));
  }
  return values;
}

// The bytes that type and shape ask for; an error where the product overflows.
absl::StatusOr<int64_t> bytesFor(const std::string& path, const std::string& name, int64_t width,
                                 const std::vector<int64_t>& shape) {
  int64_t bytes = width;
  for (const int64_t size : shape) {
    if (size > 0 && bytes > (int64_t{1} << 62) / size) {
      return bad(path, "tensor '", name, "': shape [", absl::StrJoin(shape, ","), "] is too large");
    }
    bytes *= size;
  }
  return bytes;
}

// Reading one header.
class HeaderReader {
 public:
  HeaderReader(std::string path, int64_t dataStart, int64_t dataBytes)
      : path_(std::move(path)), dataStart_(dataStart), dataBytes_(dataBytes) {}

  absl::Status read(const Json& json, std::map<std::string, SafetensorsEntry>& entries,
                    std::vector<std::string>& unsupported) {
    for (const auto& [name, value] : json.items()) {
      if (name == "__metadata__") {
        continue;
      }
      WEFT_RETURN_IF_ERROR(readEntry(name, value, entries, unsupported));
    }
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    int64_t at = 0;
    for (const Range& range : ranges_) {
      if (range.begin != at) {
        return bad(path_, "tensor '", range.name, "' begins at data byte ", range.begin, ", the one before ends at ",
                   at, "; the file has a hole or an overlap");
      }
      at = range.end;
    }
    if (at != dataBytes_) {
      return bad(path_, "the tensors end at data byte ", at, ", the file at ", dataBytes_,
                 "; it is truncated or has a tail");
    }
    return absl::OkStatus();
  }

 private:
  absl::Status readEntry(const std::string& name, const Json& value, std::map<std::string, SafetensorsEntry>& entries,
                         std::vector<std::string>& unsupported) {
    if (!value.is_object() || !value.contains("dtype") || !value["dtype"].is_string() || !value.contains("shape") ||
        !value.contains("data_offsets")) {
      return bad(path_, "tensor '", name, "' lacks dtype, shape or data_offsets");
    }
    const std::string type = value["dtype"].get<std::string>();
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> shape, integers(path_, name, value["shape"]));
    WEFT_ASSIGN_OR_RETURN(const std::vector<int64_t> offsets, integers(path_, name, value["data_offsets"]));
    const auto known = typeNames().find(type);
    const auto other = otherTypes().find(type);
    if (known == typeNames().end() && other == otherTypes().end()) {
      return bad(path_, "tensor '", name, "' has unknown dtype '", type, "'");
    }
    const int64_t width = known != typeNames().end() ? byteSize(known->second) : other->second;
    WEFT_ASSIGN_OR_RETURN(const int64_t bytes, bytesFor(path_, name, width, shape));
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] - offsets[0] != bytes) {
      return bad(path_, "tensor '", name, "' of ", type, " [", absl::StrJoin(shape, ","), "] needs ", bytes,
                 " bytes, its data_offsets are [", absl::StrJoin(offsets, ","), "]");
    }
    ranges_.push_back({offsets[0], offsets[1], name});
    if (known == typeNames().end()) {
      unsupported.push_back(name);
      return absl::OkStatus();
    }
    entries[name] = {known->second, shape, dataStart_ + offsets[0], dataStart_ + offsets[1]};
    return absl::OkStatus();
  }

  std::string path_;
  int64_t dataStart_;
  int64_t dataBytes_;
  std::vector<Range> ranges_;
};

// JSON whose objects name a key twice is refused: which of two tensors is meant?
absl::StatusOr<Json> parseHeader(const std::string& path, const std::string& text) {
  std::vector<std::vector<std::string>> keys;
  std::string twice;
  const auto callback = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Json::parse_event_t::key && !keys.empty()) {
      const std::string key = parsed.get<std::string>();
      if (std::find(keys.back().begin(), keys.back().end(), key) != keys.back().end()) {
        twice = key;
      }
      keys.back().push_back(key);
    }
    return true;
  };
  Json json = Json::parse(text, callback, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return bad(path, "the header (", text.size(), " bytes at byte 8) is not a JSON object");
  }
  if (!twice.empty()) {
    return bad(path, "the header names '", twice, "' twice");
  }
  return json;
}

}  // namespace

absl::StatusOr<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  std::ifstream stream(path, std::ios::binary | std::ios::ate);
  if (!stream) {
    return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  const int64_t size = static_cast<int64_t>(stream.tellg());
  if (size < 8) {
    return bad(path, "the file has ", size, " bytes; a safetensors file begins with the 8-byte length of its header");
  }
  stream.seekg(0);
  uint64_t length = 0;
  stream.read(reinterpret_cast<char*>(&length), 8);
  if (length > static_cast<uint64_t>(kMaxHeader) || static_cast<int64_t>(length) > size - 8) {
    return bad(path, "byte 0 says the header has ", length, " bytes, the file has ", size - 8,
               " after it; it is truncated or no safetensors file");
  }
  std::string text(length, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(length));
  WEFT_ASSIGN_OR_RETURN(const Json json, parseHeader(path, text));
  SafetensorsFile file;
  file.path_ = path;
  const int64_t dataStart = 8 + static_cast<int64_t>(length);
  WEFT_RETURN_IF_ERROR(HeaderReader(path, dataStart, size - dataStart).read(json, file.entries_, file.unsupported_));
  return file;
}

absl::StatusOr<std::vector<char>> SafetensorsFile::read(const std::string& name) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) {
    std::vector<std::string> known;
    for (const auto& [other, entry] : entries_) {
      known.push_back(other);
    }
    const std::string nearest = nearestName(name, known);
    return absl::NotFoundError(absl::StrCat(path_, ": no tensor '", name, "' among ", entries_.size(),
                                            nearest.empty() ? "" : absl::StrCat("; the nearest is '", nearest, "'")));
  }
  std::vector<char> data(it->second.end - it->second.begin);
  std::ifstream stream(path_, std::ios::binary);
  stream.seekg(it->second.begin);
  stream.read(data.data(), static_cast<std::streamsize>(data.size()));
  if (!stream) {
    return bad(path_, "tensor '", name, "' cannot be read at byte ", it->second.begin);
  }
  return data;
}

absl::Status writeSafetensors(const std::string& path, const std::vector<SafetensorsTensor>& tensors) {
  Json header;
  header["__metadata__"] = {{"format", "pt"}};
  int64_t offset = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    std::string type;
    for (const auto& [name, known] : typeNames()) {
      type = known == tensor.type ? name : type;
    }
    const int64_t bytes = static_cast<int64_t>(tensor.data.size());
    WEFT_ASSIGN_OR_RETURN(const int64_t expected, bytesFor(path, tensor.name, byteSize(tensor.type), tensor.shape));
    if (bytes != expected || header.contains(tensor.name)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": tensor '", tensor.name, "' comes with ", bytes,
                                                     " bytes, its shape asks for ", expected,
                                                     ", or stands there twice"));
    }
    header[tensor.name] = {{"dtype", type}, {"shape", tensor.shape}, {"data_offsets", {offset, offset + bytes}}};
    offset += bytes;
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  FileWriter file(path);
  const uint64_t length = text.size();
  file.write({reinterpret_cast<const char*>(&length), sizeof(length)});
  file.write(text);
  for (const SafetensorsTensor& tensor : tensors) {
    file.write({tensor.data.data(), tensor.data.size()});
  }
  return file.finish();
}

}  // namespace weft
