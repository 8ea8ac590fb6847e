#include "runtime/io/safetensors.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/json.h"
#include "runtime/base/names.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr int64_t kMaxHeader = 100'000'000;
constexpr int64_t kLengthBytes = 8;
// Bytes of a name that an error message shows.
constexpr size_t kLongestShown = 80;

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

// A name as it may stand in an error message: on one line, and cut where it is long.
std::string shownName(const std::string& name) {
  size_t end = std::min(name.size(), kLongestShown);
  // Not inside of a character.
  while (end < name.size() && end > 0 && (static_cast<uint8_t>(name[end]) & 0xC0) == 0x80) {
    --end;
  }
  return absl::StrCat("'", absl::Utf8SafeCHexEscape(name.substr(0, end)), end < name.size() ? "...'" : "'");
}

// The bytes that type and shape ask for; an error where the product overflows.
absl::StatusOr<int64_t> bytesFor(const std::string& path, const std::string& name, int64_t width,
                                 const std::vector<int64_t>& shape) {
  int64_t bytes = width;
  for (const int64_t size : shape) {
    if (size > 0 && bytes > (int64_t{1} << 62) / size) {
      return bad(path, "tensor ", shownName(name), ": shape [", absl::StrJoin(shape, ","), "] is too large");
    }
    bytes *= size;
  }
  return bytes;
}

// The tensors of a file, as its header names them one after another.
class Tensors {
 public:
  Tensors(std::string path, int64_t dataStart, int64_t dataBytes)
      : path_(std::move(path)), dataStart_(dataStart), dataBytes_(dataBytes) {}

  absl::Status add(const std::string& name, const std::string& type, const std::vector<int64_t>& shape,
                   const std::vector<int64_t>& offsets) {
    const auto known = typeNames().find(type);
    const auto other = otherTypes().find(type);
    if (known == typeNames().end() && other == otherTypes().end()) {
      return bad(path_, "tensor ", shownName(name), " has unknown dtype ", shownName(type));
    }
    const int64_t width = known != typeNames().end() ? byteSize(known->second) : other->second;
    WEFT_ASSIGN_OR_RETURN(const int64_t bytes, bytesFor(path_, name, width, shape));
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] - offsets[0] != bytes) {
      return bad(path_, "tensor ", shownName(name), " of ", type, " [", absl::StrJoin(shape, ","), "] needs ", bytes,
                 " bytes, its data_offsets are [", absl::StrJoin(offsets, ","), "]");
    }
    ranges_.push_back({offsets[0], offsets[1], name});
    if (known == typeNames().end()) {
      unsupported.push_back(name);
    } else {
      entries[name] = {known->second, shape, dataStart_ + offsets[0], dataStart_ + offsets[1]};
    }
    return absl::OkStatus();
  }

  // The tensors, by their places, follow one another from the first byte of the data to the last.
  absl::Status checkCover() {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    int64_t at = 0;
    for (const Range& range : ranges_) {
      if (range.begin != at) {
        return bad(path_, "tensor ", shownName(range.name), " begins at data byte ", range.begin,
                   ", the one before ends at ", at, "; the file has a hole or an overlap");
      }
      at = range.end;
    }
    return at == dataBytes_ ? absl::OkStatus()
                            : bad(path_, "the tensors end at data byte ", at, ", the file at ", dataBytes_,
                                  "; it is truncated or has a tail");
  }

  std::map<std::string, SafetensorsEntry> entries;
  std::vector<std::string> unsupported;

 private:
  struct Range {
    int64_t begin = 0;
    int64_t end = 0;
    std::string name;
  };

  std::string path_;
  int64_t dataStart_;
  int64_t dataBytes_;
  std::vector<Range> ranges_;
};

// Reads a header while the JSON library goes through it, so that nothing is stored that is not asked for: at most a
// name, a type, the sizes of one shape and two offsets at a time, whatever the text nests or repeats. The first error
// ends the reading.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  HeaderReader(std::string path, Tensors& tensors) : path_(std::move(path)), tensors_(tensors) {}

  absl::Status read(const std::string& text) {
    // The library would skip a byte order mark.
    if (text.empty() || text[0] != '{') {
      return bad(path_, "the header (", text.size(), " bytes at byte 8) does not begin with '{'; it is no JSON object");
    }
    nlohmann::json::sax_parse(text, this);
    WEFT_RETURN_IF_ERROR(status_);
    return tensors_.checkCover();
  }

  bool null() override { return refuseValue("null"); }
  bool boolean(bool value) override { return refuseValue(value ? "true" : "false"); }
  bool number_integer(int64_t value) override { return refuseValue(absl::StrCat(value)); }
  bool number_float(double, const std::string& text) override { return refuseValue(text); }
  bool binary(nlohmann::json::binary_t&) override { return refuseValue("bytes"); }

  bool number_unsigned(uint64_t value) override {
    if (at_ != Place::kShape && at_ != Place::kOffsets) {
      return refuseValue(absl::StrCat(value));
    }
    std::vector<int64_t>& list = at_ == Place::kShape ? shape_ : offsets_;
    if (value > kMostBytes || list.size() == kMostDimensions) {
      return refuse("tensor ", shownName(name_), ": ",
                    value > kMostBytes ? absl::StrCat(value, " is no size or offset")
                                       : absl::StrCat(key_, " has more than ", kMostDimensions, " entries"));
    }
    list.push_back(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (at_ == Place::kMetadata) {
      return true;
    }
    if (at_ != Place::kEntry || key_ != "dtype") {
      return refuseValue(shownName(value));
    }
    type_ = value;
    return true;
  }

  bool start_object(size_t) override {
    if (at_ == Place::kOutside) {
      at_ = Place::kHeader;
    } else if (at_ == Place::kHeader) {
      at_ = name_ == kMetadata ? Place::kMetadata : Place::kEntry;
    } else {
      return refuseValue("an object");
    }
    seen_.clear();
    return true;
  }

  bool key(std::string& key) override {
    if (at_ == Place::kHeader) {
      name_ = key;
      type_.clear();
      shape_.clear();
      offsets_.clear();
      return names_.insert(key).second || refuse("the header names ", shownName(key), " twice");
    }
    key_ = key;
    if (!seen_.insert(key).second) {
      return refuse(at_ == Place::kEntry ? "tensor " : "", shownName(name_), " names ", shownName(key), " twice");
    }
    return at_ == Place::kMetadata || key == "dtype" || key == "shape" || key == "data_offsets" ||
           refuse("tensor ", shownName(name_), " has an unknown entry ", shownName(key),
                  "; it has dtype, shape and data_offsets");
  }

  bool start_array(size_t) override {
    if (at_ != Place::kEntry || key_ == "dtype") {
      return refuseValue("a list");
    }
    at_ = key_ == "shape" ? Place::kShape : Place::kOffsets;
    return true;
  }

  bool end_array() override {
    at_ = Place::kEntry;
    return true;
  }

  bool end_object() override {
    const bool entry = at_ == Place::kEntry;
    at_ = at_ == Place::kHeader ? Place::kOutside : Place::kHeader;
    if (entry && seen_.size() != 3) {
      return refuse("tensor ", shownName(name_), " lacks dtype, shape or data_offsets");
    }
    status_ = entry ? tensors_.add(name_, type_, shape_, offsets_) : absl::OkStatus();
    return status_.ok();
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) override {
    // The library counts the bytes it has read.
    return refuse("the header is no JSON at byte ", position + kLengthBytes - 1, ": ", jsonReason(error));
  }

 private:
  enum class Place { kOutside, kHeader, kMetadata, kEntry, kShape, kOffsets };
  static constexpr char kMetadata[] = "__metadata__";
  static constexpr size_t kMostDimensions = 64;
  static constexpr uint64_t kMostBytes = uint64_t{1} << 62;

  template <typename... Parts>
  bool refuse(const Parts&... parts) {
    status_ = bad(path_, parts...);
    return false;
  }

  // A value that must not stand where it was found.
  bool refuseValue(const std::string& found) {
    switch (at_) {
      case Place::kOutside:
        return refuse("the header is ", found, "; it must be an object");
      case Place::kHeader:
        return refuse(name_ == kMetadata ? "" : "tensor ", shownName(name_), " is ", found, "; it must be an object");
      case Place::kMetadata:
        return refuse(shownName(name_), ": ", shownName(key_), " is ", found, "; metadata are texts");
      default:
        return refuse("tensor ", shownName(name_), ": ", key_, " has ", found, "; dtype is a text, shape and ",
                      "data_offsets are lists of integers of at least 0");
    }
  }

  std::string path_;
  Tensors& tensors_;
  absl::Status status_;
  Place at_ = Place::kOutside;
  std::set<std::string> names_;  // of the header
  std::set<std::string> seen_;   // of the object inside it
  std::string name_;             // the tensor that is being read, or __metadata__
  std::string key_;              // and which of its entries
  std::string type_;
  std::vector<int64_t> shape_;
  std::vector<int64_t> offsets_;
};

}  // namespace

// An open file. What is read is what was opened, whatever the path names by then.
class SafetensorsFile::Handle {
 public:
  static absl::StatusOr<std::shared_ptr<Handle>> open(const std::string& path) {
    // Without blocking: nobody may ever write to a pipe.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
      return absl::NotFoundError(absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
    }
    auto handle = std::make_shared<Handle>(descriptor);
    if (fstat(descriptor, &handle->state_) != 0 || !S_ISREG(handle->state_.st_mode)) {
      return absl::NotFoundError(absl::StrCat("cannot read ", path, ": it is no file but a folder or a device"));
    }
    return handle;
  }
  explicit Handle(int descriptor) : descriptor_(descriptor) {}
  ~Handle() { close(descriptor_); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  int64_t size() const { return state_.st_size; }

  // Has nobody written to the file since it was opened?
  bool isSame() const {
    struct stat now = {};
    return fstat(descriptor_, &now) == 0 && now.st_size == state_.st_size &&
           now.st_mtim.tv_sec == state_.st_mtim.tv_sec && now.st_mtim.tv_nsec == state_.st_mtim.tv_nsec;
  }

  bool read(int64_t from, int64_t bytes, char* to) const {
    while (bytes > 0) {
      const ssize_t got = pread(descriptor_, to, static_cast<size_t>(bytes), from);
      if (got <= 0 && !(got < 0 && errno == EINTR)) {
        return false;
      }
      const int64_t taken = std::max<int64_t>(got, 0);
      from += taken;
      to += taken;
      bytes -= taken;
    }
    return true;
  }

 private:
  int descriptor_;
  struct stat state_ = {};
};

absl::StatusOr<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(std::shared_ptr<Handle> handle, Handle::open(path));
  const int64_t size = handle->size();
  if (size < kLengthBytes) {
    return bad(path, "the file has ", size, " bytes; a safetensors file begins with the 8-byte length of its header");
  }
  uint64_t length = 0;
  if (!handle->read(0, kLengthBytes, reinterpret_cast<char*>(&length))) {
    return bad(path, "the length of its header cannot be read");
  }
  if (length > static_cast<uint64_t>(kMaxHeader) || static_cast<int64_t>(length) > size - kLengthBytes) {
    return bad(path, "byte 0 says the header has ", length, " bytes, the file has ", size - kLengthBytes,
               " after it, and no header has more than ", kMaxHeader, "; it is truncated or no safetensors file");
  }
  std::string text(length, '\0');
  if (!handle->read(kLengthBytes, static_cast<int64_t>(length), text.data())) {
    return bad(path, "the header of ", length, " bytes cannot be read");
  }
  const int64_t dataStart = kLengthBytes + static_cast<int64_t>(length);
  Tensors tensors(path, dataStart, size - dataStart);
  WEFT_RETURN_IF_ERROR(HeaderReader(path, tensors).read(text));
  SafetensorsFile file;
  file.path_ = path;
  file.handle_ = std::move(handle);
  file.entries_ = std::move(tensors.entries);
  file.unsupported_ = std::move(tensors.unsupported);
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
    return absl::NotFoundError(absl::StrCat(path_, ": no tensor ", shownName(name), " among ", entries_.size(),
                                            nearest.empty() ? "" : "; the nearest is " + shownName(nearest)));
  }
  std::vector<char> data(it->second.end - it->second.begin);
  if (!handle_->read(it->second.begin, static_cast<int64_t>(data.size()), data.data())) {
    return bad(path_, "tensor ", shownName(name), " cannot be read at byte ", it->second.begin,
               "; the file has been truncated since it was opened");
  }
  return handle_->isSame() ? absl::StatusOr<std::vector<char>>(std::move(data))
                           : bad(path_, "the file has been written to since it was opened; read it again");
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
