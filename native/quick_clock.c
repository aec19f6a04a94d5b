/* `storage.environment.quick_clock` in C: what is said of its functions is there. */
#include <Python.h>
#include <time.h>

#ifdef CLOCK_BOOTTIME
#define STEADY_CLOCK CLOCK_BOOTTIME
#else
#define STEADY_CLOCK CLOCK_MONOTONIC
#endif

static PyObject *monotonic_s(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    struct timespec now;
    if (clock_gettime(STEADY_CLOCK, &now) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyFloat_FromDouble((double)now.tv_sec + 1e-9 * (double)now.tv_nsec);
}

static PyObject *now_ms(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(none))
{
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now) < 0)
        return PyErr_SetFromErrno(PyExc_OSError);
    return PyLong_FromLongLong((long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
}

static PyMethodDef functions[] = {
    {"monotonic_s", monotonic_s, METH_NOARGS, NULL},
    {"now_ms", now_ms, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "storage.environment.quick_clock", NULL, -1, functions, NULL, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC PyInit_quick_clock(void)
{
    return PyModule_Create(&definition);
}
