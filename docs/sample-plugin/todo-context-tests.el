;;; todo-context-tests.el --- Tests of todo-context  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A sample of a suite that is written with contexture-ert.  The tests
;; that replay need no server; the others start one each.

;;; Code:

(require 'contexture-ert)
(require 'ert-x)
(require 'todo-context)

(defconst todo-context-tests--files
  '(("src/a.el" . "(one)\n(two) ; TODO: rename\n;; FIXME three\n")
    ("src/done.el" . "(four) ; TODOS is another word\n"))
  "A project with two things to do.")

(defmacro todo-context-tests--in (file &rest body)
  "Run BODY in a buffer that visits FILE of a small project."
  (declare (indent 1) (debug t))
  `(contexture-ert-with-files todo-context-tests--files
     (with-current-buffer (find-file-noselect ,file)
       ,@body)))

;;;; Without any server

(ert-deftest todo-context-finds-lines ()
  (todo-context-tests--in "src/a.el"
    (should (equal (mapcar (lambda (note) (plist-get note :content))
                           (todo-context--notes))
                   '("(two) ; TODO: rename" ";; FIXME three")))))

(ert-deftest todo-context-says-that-there-is-nothing ()
  (todo-context-tests--in "src/done.el"
    (should-error (todo-context-add) :type 'user-error)))

;;;; With a recorded exchange

(ert-deftest todo-context-adds-and-inserts ()
  (todo-context-tests--in "src/a.el"
    (contexture-ert-with-replay (ert-resource-file "add-and-insert.sexp")
      (todo-context-add)
      (with-temp-buffer
        (todo-context-insert)
        (should (string-search "(two) ; TODO: rename" (buffer-string)))))))

;;;; With a server

(ert-deftest todo-context-sends-the-place-of-each-line ()
  (todo-context-tests--in "src/a.el"
    (contexture-ert-with-server
      (todo-context-add)
      (contexture-ert-should-called
       'add-item `(:manager "todos" :content ";; FIXME three"
                      :metadata (:filename ,(buffer-file-name) :start-line 3)))
      (should (= (length (contexture-ert-calls 'add-item)) 2)))))

(ert-deftest todo-context-says-when-all-is-added ()
  (todo-context-tests--in "src/a.el"
    (contexture-ert-with-server
      (let (said)
        (cl-letf (((symbol-function 'message)
                   (lambda (&rest text) (setq said (apply #'format text)))))
          (todo-context-add)
          (contexture-ert-wait-for said :message "no word of success"))
        (should (equal said "Added 2 TODOs"))))))

(ert-deftest todo-context-the-first-item-is-always-the-same ()
  (todo-context-tests--in "src/a.el"
    (contexture-ert-with-server
      (todo-context-add)
      (let ((item (car (contexture-request 'list-items '(:manager "todos")))))
        (should (equal (plist-get item :id) "ctx-1"))
        (should (= (plist-get item :timestamp) contexture-ert-time))))))

(ert-deftest todo-context-keeps-what-was-added ()
  (todo-context-tests--in "src/a.el"
    (dolist (count '(2 4))
      (contexture-ert-with-server
        :state (concat contexture-ert-directory "state")
        (todo-context-add)
        (should (= (length (contexture-request 'list-items '(:manager "todos")))
                   count))))))

(provide 'todo-context-tests)
;;; todo-context-tests.el ends here
