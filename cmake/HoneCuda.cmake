# The CUDA backend is built where CUDA's headers are; nothing of CUDA is linked, libraries are opened at run time.
# Headers of libraries that add tactics or profiles are optional one by one: HN_HAVE_CUDNN, HN_HAVE_CUBLASLT and
# HN_HAVE_CUPTI tell the backend's files.
option(HONE_CUDA "build the CUDA backend where its headers are found" ON)
set(HONE_CUDA_HINTS $ENV{CUDA_PATH}/include /usr/local/cuda/include)
set(HONE_CUDA_OPTIONS -I${CMAKE_SOURCE_DIR}/src/backends/cuda/device) # of files that include CUDA's headers, or argument structs of device texts
if(HONE_CUDA)
  find_path(HONE_CUDA_INCLUDE cuda.h HINTS ${HONE_CUDA_HINTS})
  find_path(HONE_NVRTC_INCLUDE nvrtc.h HINTS ${HONE_CUDA_INCLUDE} ${HONE_CUDA_HINTS})
  find_path(HONE_CUDNN_INCLUDE cudnn_graph.h HINTS ${HONE_CUDA_INCLUDE} ${HONE_CUDA_HINTS})
  find_path(HONE_CUBLASLT_INCLUDE cublasLt.h HINTS ${HONE_CUDA_INCLUDE} ${HONE_CUDA_HINTS})
  find_path(HONE_CUPTI_INCLUDE cupti.h HINTS ${HONE_CUDA_INCLUDE} ${HONE_CUDA_HINTS} $ENV{CUDA_PATH}/extras/CUPTI/include
    /usr/local/cuda/extras/CUPTI/include)
  if(NOT HONE_CUDA_INCLUDE OR NOT HONE_NVRTC_INCLUDE)
    message(STATUS "CUDA's headers (cuda.h, nvrtc.h) were not found: hone is built without its CUDA backend")
    set(HONE_CUDA OFF)
  endif()
endif()
if(NOT HONE_CUDA)
  list(APPEND SOURCES ${CMAKE_SOURCE_DIR}/src/backends/cuda/absent.c)
  return()
endif()

set(cuda_folders ${HONE_CUDA_INCLUDE} ${HONE_NVRTC_INCLUDE})
list(APPEND HONE_CUDA_OPTIONS -DHN_HAVE_CUDA=1)
foreach(library CUDNN CUBLASLT CUPTI)
  if(HONE_${library}_INCLUDE)
    list(APPEND HONE_CUDA_OPTIONS -DHN_HAVE_${library}=1)
    list(APPEND cuda_folders ${HONE_${library}_INCLUDE})
  endif()
endforeach()
list(REMOVE_DUPLICATES cuda_folders)
foreach(folder ${cuda_folders})
  list(APPEND HONE_CUDA_OPTIONS -isystem${folder})
endforeach()

# All files of all families: a new one, or a new family, needs no line here.
file(GLOB_RECURSE cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backends/cuda/*.c)
list(REMOVE_ITEM cuda_sources ${CMAKE_SOURCE_DIR}/src/backends/cuda/absent.c)
set_source_files_properties(${cuda_sources} PROPERTIES COMPILE_OPTIONS "${HONE_CUDA_OPTIONS}")
list(APPEND SOURCES ${cuda_sources})

# hone_cuda_texts(TARGET): device texts, as NVRTC will see them, become part of the target.
function(hone_cuda_texts target)
  set(folder ${CMAKE_SOURCE_DIR}/src/backends/cuda)
  file(GLOB texts CONFIGURE_DEPENDS ${folder}/device/*.cuh ${folder}/device/*.h ${folder}/*/*.cu ${folder}/*/*_args.h)
  list(REMOVE_DUPLICATES texts)
  set(out ${CMAKE_BINARY_DIR}/generated/cuda_texts.c)
  add_custom_command(OUTPUT ${out} COMMAND ${CMAKE_COMMAND} "-DFILES=${texts}" -DOUTPUT=${out}
    -P ${CMAKE_SOURCE_DIR}/cmake/EmbedTexts.cmake DEPENDS ${texts} ${CMAKE_SOURCE_DIR}/cmake/EmbedTexts.cmake VERBATIM)
  set_source_files_properties(${out} PROPERTIES COMPILE_OPTIONS "${HONE_CUDA_OPTIONS}")
  target_sources(${target} PRIVATE ${out})
endfunction()
