#include "runtime/plan/plan_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/stubs/logging.h"
#include "runtime/base/file_writer.h"
#include "runtime/base/status.h"

namespace weft {
namespace {

constexpr char kFirstTag = '\x08';
// What a protobuf may have.
constexpr size_t kMaxPlanBytes = size_t{1} << 31;

// FNV-1a over 64 bits.
uint64_t hashOf(const std::string& bytes) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : bytes) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  }
  return hash;
}

// Map fields in key order: the same plan gives the same bytes.
std::string deterministicBytes(const plan::Plan& plan) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    plan.SerializeToCodedStream(&coded);
  }
  return bytes;
}

}  // namespace

DType dtypeOf(plan::ElementType type) {
  return static_cast<DType>(type);
}
plan::ElementType elementTypeOf(DType type) {
  return static_cast<plan::ElementType>(type);
}

absl::StatusOr<std::string> serializePlan(const plan::Plan& plan) {
  plan::Plan copy = plan;
  copy.set_checksum(0);
  copy.set_checksum(hashOf(deterministicBytes(copy)));
  return deterministicBytes(copy);
}

absl::Status writePlan(const plan::Plan& plan, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const std::string bytes, serializePlan(plan));
  return writeFile(path, bytes);
}

absl::StatusOr<plan::Plan> readPlan(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    return absl::NotFoundError(absl::StrCat("cannot read plan ", path, ": ", std::strerror(errno)));
  }
  // Never more than a plan can have, should this be a device or a pipe that has no end; and a plan begins with the tag
  // of its first field.
  std::string bytes;
  constexpr size_t kPart = size_t{1} << 20;
  while (stream && bytes.size() <= kMaxPlanBytes && (bytes.empty() || bytes[0] == kFirstTag)) {
    const size_t before = bytes.size();
    bytes.resize(before + kPart);
    stream.read(bytes.data() + before, kPart);
    bytes.resize(before + static_cast<size_t>(stream.gcount()));
  }
  if (bytes.size() > kMaxPlanBytes) {
    return absl::DataLossError(absl::StrCat(path, ": more than ", kMaxPlanBytes, " bytes, no plan has so many"));
  }
  return parsePlan(bytes, path);
}

absl::StatusOr<plan::Plan> parsePlan(const std::string& bytes, const std::string& source) {
  plan::Plan plan;
  const google::protobuf::LogSilencer silent;  // the error says it
  if (bytes.empty() || !plan.ParseFromString(bytes)) {
    return absl::DataLossError(absl::StrCat(source, ": not a plan file, or one cut short (", bytes.size(),
                                            " bytes); give what `weft compile` or --plan-only wrote"));
  }
  if (plan.format_version() != kPlanFormatVersion) {
    return absl::FailedPreconditionError(absl::StrCat(source, ": plan format ", plan.format_version(),
                                                      ", this program reads format ", kPlanFormatVersion,
                                                      "; compile the model again"));
  }
  const uint64_t written = plan.checksum();
  plan.set_checksum(0);
  const uint64_t found = hashOf(deterministicBytes(plan));
  plan.set_checksum(written);
  if (written != found) {
    return absl::DataLossError(absl::StrCat(source, ": checksum ", written, " written, ", found,
                                            " found; the file is damaged, compile it again"));
  }
  if (absl::Status status = validatePlan(plan); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(source, ": ", std::string(status.message())));
  }
  return plan;
}

}  // namespace weft
