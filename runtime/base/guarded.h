// Libraries throw, Weft returns statuses: the border between.
#pragma once

#include <exception>
#include <new>
#include <string>

#include "absl/status/status.h"

namespace weft {

// What `body` returns; an exception becomes an error. To be called where work of others begins: kernels, allocations of
// sizes that a file says.
template <typename Body>
absl::Status guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("out of memory; use a smaller batch, more ranks or a memory limit");
  } catch (const std::exception& error) {
    return absl::InternalError(std::string("it threw an exception: ") + error.what());
  } catch (...) {
    return absl::InternalError("it threw an exception of an unknown type");
  }
}

}  // namespace weft
