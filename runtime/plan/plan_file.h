// Reading, writing and validating plan files.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/base/dtype.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

inline constexpr uint32_t kPlanFormatVersion = 4;

DType dtypeOf(plan::ElementType type);
plan::ElementType elementTypeOf(DType type);

// Whole or not at all (runtime/base/file_writer.h). Deterministic bytes (map fields in key order); sets the checksum.
absl::Status writePlan(const plan::Plan& plan, const std::string& path);
absl::StatusOr<std::string> serializePlan(const plan::Plan& plan);

// Reads and validates. Errors: unreadable file (path, reason), not a plan, other format version (both), checksum,
// and what validatePlan finds.
absl::StatusOr<plan::Plan> readPlan(const std::string& path);
absl::StatusOr<plan::Plan> parsePlan(const std::string& bytes, const std::string& source);

// Every index, offset and size in range: buffers inside their regions, operands inside buffers, groups a partition of
// the ranks, members of a collective agree in count, the table has all columns, one schedule per rank. Guards against
// corruption and mistakes.
absl::Status validatePlan(const plan::Plan& plan);

}  // namespace weft
