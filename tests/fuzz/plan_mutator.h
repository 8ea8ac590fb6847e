// Changes of plans, one field at a time.
#pragma once

#include "runtime/plan/plan.pb.h"
#include "tests/fuzz/mutate.h"

namespace weft::fuzz {

// Walks from the plan to a field, each field of a message as likely as another, and changes it there: a number to one
// at which arithmetic breaks or to a neighbor's, a name to another of the plan, an entry of a list doubled, removed,
// exchanged, or put in the place of another.
void changeOneField(plan::Plan& plan, Mutator& mutator);

}  // namespace weft::fuzz
