/* `storage.environment.quick_reads` in C: what is said of its functions is there.
 *
 * The interpreter's lock is kept meanwhile: none of these reads waits, and to give it back and take
 * it again costs as much as one of them.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <errno.h>
#include <sys/uio.h>

#ifdef RWF_NOWAIT
/* As preadv2, without waiting; a signal that comes meanwhile does not end it. */
static ssize_t read_nowait(int descriptor, void *into, size_t size, off_t position)
{
    struct iovec buffer = {into, size};
    ssize_t count;
    do
        count = preadv2(descriptor, &buffer, 1, position, RWF_NOWAIT);
    while (count < 0 && errno == EINTR);
    return count;
}
#else
static ssize_t read_nowait(int descriptor, void *into, size_t size, off_t position)
{
    (void)descriptor, (void)into, (void)size, (void)position;
    errno = EOPNOTSUPP;
    return -1;
}
#endif

/* Take `count` whole numbers, the first of which is a descriptor. */
static int take_numbers(PyObject *const *arguments, Py_ssize_t given, Py_ssize_t count,
                        long long *numbers)
{
    if (given != count) {
        PyErr_Format(PyExc_TypeError, "%zd arguments are needed, %zd are given", count, given);
        return -1;
    }
    for (Py_ssize_t at = 0; at < count; at++) {
        numbers[at] = PyLong_AsLongLong(arguments[at]);
        if (numbers[at] == -1 && PyErr_Occurred())
            return -1;
    }
    if (numbers[0] != (int)numbers[0]) {
        PyErr_SetString(PyExc_OverflowError, "no descriptor is so great");
        return -1;
    }
    return 0;
}

static PyObject *probe(PyObject *Py_UNUSED(self), PyObject *const *arguments, Py_ssize_t given)
{
    long long numbers[4];
    if (take_numbers(arguments, given, 4, numbers) < 0)
        return NULL;
    long long last, stride = numbers[3];
    if (stride <= 0 || __builtin_add_overflow(numbers[1], numbers[2] - 1, &last)) {
        PyErr_SetString(PyExc_ValueError, "no such range");
        return NULL;
    }
    char probed;
    for (long long at = numbers[1]; at < last; at = last - at > stride ? at + stride : last)
        if (read_nowait((int)numbers[0], &probed, 1, at) < 0)
            return PyBool_FromLong(errno != EAGAIN);
    return PyBool_FromLong(read_nowait((int)numbers[0], &probed, 1, last) >= 0 || errno != EAGAIN);
}

static PyObject *read_cached(PyObject *Py_UNUSED(self), PyObject *const *arguments,
                             Py_ssize_t given)
{
    long long numbers[3];
    if (take_numbers(arguments, given, 3, numbers) < 0)
        return NULL;
    if (numbers[1] < 0 || numbers[1] > PY_SSIZE_T_MAX) {
        PyErr_SetString(PyExc_ValueError, "no such size");
        return NULL;
    }
    Py_ssize_t size = (Py_ssize_t)numbers[1], done = 0;
    PyObject *data = PyBytes_FromStringAndSize(NULL, size);
    if (data == NULL)
        return NULL;
    while (done < size) {
        ssize_t count = read_nowait((int)numbers[0], PyBytes_AS_STRING(data) + done,
                                    (size_t)(size - done), numbers[2] + done);
        if (count == 0)
            break;
        if (count < 0) {
            const int would_wait = errno == EAGAIN;
            if (!would_wait)
                PyErr_SetFromErrno(PyExc_OSError);
            Py_DECREF(data);
            if (would_wait)
                Py_RETURN_NONE;
            return NULL;
        }
        done += count;
    }
    if (done < size)
        _PyBytes_Resize(&data, done);
    return data;
}

#define FUNCTION(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef functions[] = {
    FUNCTION(probe),
    FUNCTION(read_cached),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "storage.environment.quick_reads", NULL, -1, functions, NULL, NULL, NULL,
    NULL,
};

PyMODINIT_FUNC PyInit_quick_reads(void)
{
    PyObject *module = PyModule_Create(&definition);
#ifdef RWF_NOWAIT
    PyObject *has_nowait = Py_True;
#else
    PyObject *has_nowait = Py_False;
#endif
    if (module != NULL && PyModule_AddObjectRef(module, "has_nowait", has_nowait) < 0)
        Py_CLEAR(module);
    return module;
}
