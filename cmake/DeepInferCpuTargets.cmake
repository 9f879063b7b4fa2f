# src/kernels/cpu/ops/*.cc compiled once per target: an object library each, joined with
# src/kernels/cpu/*.cc into deepinfer::kernels_cpu.

file(GLOB DEEPINFER_CPU_OPS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/cpu/ops/*.cc)
set(DEEPINFER_CPU_OBJECTS)
set(DEEPINFER_CPU_TARGETS)

function(deepinfer_cpu_target name)
  add_library(deepinfer_cpu_${name} OBJECT ${DEEPINFER_CPU_OPS})
  target_link_libraries(deepinfer_cpu_${name} PRIVATE deepinfer_flags deepinfer_kernels)
  target_compile_definitions(deepinfer_cpu_${name} PRIVATE DEEPINFER_TARGET=${name})
  # -O1 at least: without, inline functions of shared headers would be left standing in these
  # objects (target_symbols.py). -Wno-psabi: vectors never cross a function that is not inlined.
  target_compile_options(deepinfer_cpu_${name} PRIVATE $<IF:$<CONFIG:Debug>,-O1,-O3> -Wno-psabi
                                                       ${ARGN})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # g++ 12 takes the undefined vectors inside its own intrinsics for mistakes (GCC PR 105593).
    target_compile_options(deepinfer_cpu_${name} PRIVATE -Wno-maybe-uninitialized -Wno-uninitialized)
  endif()
  set(DEEPINFER_CPU_OBJECTS ${DEEPINFER_CPU_OBJECTS} $<TARGET_OBJECTS:deepinfer_cpu_${name}>
      PARENT_SCOPE)
  set(DEEPINFER_CPU_TARGETS ${DEEPINFER_CPU_TARGETS} ${name} PARENT_SCOPE)
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(avx2 -mavx2 -mfma -mbmi2 -mf16c)
  set(avx512 ${avx2} -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512cd
             -mprefer-vector-width=512)
  deepinfer_cpu_target(scalar)
  deepinfer_cpu_target(avx2 ${avx2})
  deepinfer_cpu_target(avx512 ${avx512})
  deepinfer_cpu_target(avx512_bf16 ${avx512} -mavx512vbmi -mavx512bf16)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  deepinfer_cpu_target(neon)
else()
  deepinfer_cpu_target(scalar)
endif()

deepinfer_library(kernels/cpu DEPS kernels)
target_sources(deepinfer_kernels_cpu PRIVATE ${DEEPINFER_CPU_OBJECTS})
