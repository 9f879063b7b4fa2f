#include "cli/command.h"

int main(int argc, char** argv) { return deepinfer::cli::RunProgram(argc, argv); }
