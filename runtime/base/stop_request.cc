#include "runtime/base/stop_request.h"

namespace weft {
namespace {

// Handlers have no argument for it. Set while a StopOnSignals lives.
std::atomic<StopRequest*> signalled{nullptr};
static_assert(std::atomic<StopRequest*>::is_always_lock_free, "a signal handler reads it");

// Only what is safe in a signal handler: lock-free atomics and sigaction.
void onSignal(int signal) {
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGINT, &standard, nullptr);
  sigaction(SIGTERM, &standard, nullptr);
  if (StopRequest* const stop = signalled.load()) {
    stop->request(signal);
  }
}

void install(int signal, struct sigaction& before) {
  sigaction(signal, nullptr, &before);
  if (before.sa_handler == SIG_IGN) {
    return;
  }
  struct sigaction mine = {};
  mine.sa_handler = onSignal;
  mine.sa_flags = SA_RESTART;
  sigaction(signal, &mine, nullptr);
}

}  // namespace

std::string StopRequest::reason() const {
  switch (signal()) {
    case 0:
      return "as requested";
    case SIGINT:
      return "by SIGINT";
    case SIGTERM:
      return "by SIGTERM";
    default:
      return "by signal " + std::to_string(signal());
  }
}

StopOnSignals::StopOnSignals(StopRequest& stop) {
  signalled = &stop;
  install(SIGINT, interrupt_);
  install(SIGTERM, terminate_);
}

StopOnSignals::~StopOnSignals() {
  sigaction(SIGINT, &interrupt_, nullptr);
  sigaction(SIGTERM, &terminate_, nullptr);
  signalled = nullptr;
}

}  // namespace weft
