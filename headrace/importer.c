/* Runs a module of the compiled library; `headrace/__init__.py` calls it.
 *
 * For each module the library holds a capsule with the function that makes it. What mypyc writes
 * besides is an extension module for each of ours that does no more than this.
 */
#include <Python.h>

static PyObject *run(PyObject *self, PyObject *capsule)
{
    PyObject *(*make)(void) = PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    return make ? make() : NULL;
}

static PyMethodDef methods[] = {
    {"run", run, METH_O, "run(capsule) -> module: make the module that the capsule stands for."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "headrace.importer", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_importer(void)
{
    return PyModule_Create(&definition);
}
