;;; contexture-list-test-helper.el --- Lists to be tested  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Lists with some items, and what they show, for the tests of the list.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-list)

(defun contexture-list-tests--add (content &rest metadata)
  "Add CONTENT with METADATA to the context \"m\"."
  (contexture-request 'add-context (list :manager "m" :content content
                                         :type :code :metadata metadata)))

(defmacro contexture-list-tests--with-list (&rest body)
  "Run BODY in a list of three items, with a server."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (let ((file (contexture-test-file "a.el" "one" "two" "three" "four")))
       (make-directory ".git")
       (contexture-list-tests--add "two\nthree\n" :filename file :start-line 2
                                   :end-line 3 :origin :region
                                   :project llm-ert-directory)
       (contexture-list-tests--add "some more words that cost more tokens"
                                   :buffer "notes" :start-line 10 :end-line 10)
       (contexture-list-tests--add "x" :buffer "notes" :symbol "my-symbol"))
     (contexture-list-tests--open
      (lambda () ,@body))))

(defun contexture-list-tests--open (function)
  "Open the list of the context \"m\" and call FUNCTION in it."
  (save-window-excursion
    (contexture-list "m")
    (with-current-buffer contexture-list-buffer
      (llm-ert-wait-for contexture-list--items)
      (contexture-list-tests--go-to 1)
      (funcall function))))

(defun contexture-list-tests--go-to (number)
  "Go to the row of the item with NUMBER, counted from 1 in this test's context."
  (goto-char (contexture-list--find
              (plist-get (nth (1- number) contexture-list--items) :id))))

(defun contexture-list-tests--column (column)
  "Return what COLUMN shows, from top to bottom."
  (save-excursion
    (goto-char (point-min))
    (cl-loop while (not (eobp))
             when (tabulated-list-get-entry)
             collect (substring-no-properties (aref it column))
             do (forward-line))))

(defun contexture-list-tests--tags ()
  "Return the marks of the items, from top to bottom."
  (save-excursion
    (goto-char (point-min))
    (cl-loop while (not (eobp))
             when (tabulated-list-get-id)
             collect (buffer-substring-no-properties (point) (1+ (point)))
             do (forward-line))))

(defun contexture-list-tests--order ()
  "Return the texts of the context's items, in the order the server has."
  (mapcar (lambda (item) (string-trim (plist-get item :content)))
          (contexture-test-items "m")))

(defun contexture-list-tests--until-rows (number)
  "Wait until the list has NUMBER rows."
  (llm-ert-wait-for (= (length (contexture-list-tests--column 0)) number)))

(provide 'contexture-list-test-helper)
;;; contexture-list-test-helper.el ends here
