;;; bench-ert.el --- Time tests with a server of their own  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Times what contexture-ert does for each test: starting a server up to
;; the answer to a first add, 100 tests with a server each, and 100 tests
;; that replay a recording.  The rows are those of from-emacs.el.  Run it
;; with the package and this folder on `load-path':
;;
;;   CONTEXTURE_BIN=contexture emacs --batch -Q -L elisp -L benches/emacs \
;;     -l bench-ert -f bench-ert-run

;;; Code:

(require 'from-emacs)
(require 'contexture-ert)

(defconst bench-ert-tests 100
  "Number of tests in a suite.")

(defun bench-ert-add ()
  "Make the call that each test begins with."
  (contexture-request 'add-item '(:manager "m" :content "(+ 1 2)")))

(defun bench-ert-talk ()
  "Do what a test does: add, read, remove, read."
  (let ((id (plist-get (bench-ert-add) :id)))
    (contexture-request 'get-context '(:manager "m"))
    (contexture-request 'remove-items (list :manager "m" :id id))
    (contexture-request 'get-context '(:manager "m"))))

(defun bench-ert-first-add ()
  "Return the microseconds from the beginning of a test to its first answer."
  (let ((start (current-time)))
    (contexture-ert-with-server
      (bench-ert-add)
      (* 1e6 (float-time (time-subtract nil start))))))

(defun bench-ert-run ()
  "Print how long a server for each test takes."
  (let ((file (make-temp-file "contexture" nil ".sexp")) times)
    (unwind-protect
        (progn
          (bench-ert-first-add)         ; loads the client
          (dotimes (_ bench-ert-tests) (push (bench-ert-first-add) times))
          (bench-row-limit "server of a test, to the answer of its first add, median"
                           (/ (bench-quantile (sort times #'<) 0.5) 1000) 12)
          (bench-row-limit
           "100 tests with a server each"
           (/ (bench-microseconds
               (lambda ()
                 (dotimes (_ bench-ert-tests)
                   (contexture-ert-with-server (bench-ert-talk)))))
              1000)
           4000)
          (contexture-ert-with-recording file (bench-ert-talk))
          (bench-row-limit
           "100 tests that replay a recording"
           (/ (bench-microseconds
               (lambda ()
                 (dotimes (_ bench-ert-tests)
                   (contexture-ert-with-replay file (bench-ert-talk)))))
              1000)
           2000))
      (delete-file file))))

(provide 'bench-ert)
;;; bench-ert.el ends here
