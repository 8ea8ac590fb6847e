// `weft view`: a page that shows a plan.
#pragma once

namespace weft::tools {

// weft view PLAN [--profile TRACE [--step N]] [--machine FILE] (-o PAGE.html | --json)
int viewCommand(int argc, char** argv);

}  // namespace weft::tools
