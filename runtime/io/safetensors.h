// safetensors files: named tensors with a JSON header (8-byte little-endian length, JSON, data).
//
// Reading is strict: a header is an object of tensors, each with dtype, shape and data_offsets, and "__metadata__" of
// texts; no name stands twice, a tensor has at most 64 dimensions; the ranges of the tensors, sorted, must cover the
// data without hole, overlap or tail, and each must be as long as its type and shape say. Reading takes time and memory
// by the header's length. Errors name the file, the byte offset or the tensor, and both values.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"

namespace weft {

struct SafetensorsEntry {
  DType type = DType::kF32;
  std::vector<int64_t> shape;
  int64_t begin = 0;  // bytes from the start of the file
  int64_t end = 0;
};

class SafetensorsFile {
 public:
  // Reads the header only; keeps the file open.
  static absl::StatusOr<SafetensorsFile> open(const std::string& path);

  const std::string& path() const { return path_; }
  // Tensors of types Weft does not have are listed by name in unsupported().
  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }
  const std::vector<std::string>& unsupported() const { return unsupported_; }

  // The elements of one tensor. Errors: unknown name (the nearest one is suggested), a file that was truncated or
  // written to since it was opened. One that took its path is not looked at.
  absl::StatusOr<std::vector<char>> read(const std::string& name) const;

 private:
  class Handle;

  std::string path_;
  std::shared_ptr<const Handle> handle_;
  std::map<std::string, SafetensorsEntry> entries_;
  std::vector<std::string> unsupported_;
};

struct SafetensorsTensor {
  std::string name;
  DType type = DType::kF32;
  std::vector<int64_t> shape;
  std::vector<char> data;
};

// Whole or not at all (runtime/base/file_writer.h). Header padded to 8 bytes, "format": "pt".
absl::Status writeSafetensors(const std::string& path, const std::vector<SafetensorsTensor>& tensors);

}  // namespace weft
