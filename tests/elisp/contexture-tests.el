;;; contexture-tests.el --- Tests of marking and using context  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What each command adds, changes and says.

;;; Code:

(require 'contexture-test-helper)
(require 'find-func)

(defconst contexture-tests--elisp
  '(";;; -*- lexical-binding: t -*-"
    ""
    "(defun my-first (x)"
    "  \"Return X.\""
    "  x)"
    ""
    "(defvar my-second 2)")
  "Lines of a small file.")

(defmacro contexture-tests--with-elisp (&rest body)
  "Run BODY in a buffer that visits a small file, with a server."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (contexture-test-visiting
         (apply #'contexture-test-file "a.el" contexture-tests--elisp)
       ,@body)))

(defun contexture-tests--region (start end)
  "Add the region from the beginning of line START to that of line END."
  (contexture-add-region (contexture--line-position start)
                         (contexture--line-position end)))

;;;; Regions

(ert-deftest contexture-add-region-sends-text-lines-and-source ()
  (contexture-tests--with-elisp
    (goto-char (point-min))
    (contexture-add-region (progn (search-forward "my-") (point))
                           (progn (search-forward "Return") (point)))
    (let ((item (contexture-test-only-item "a.el")))
      (should (equal (plist-get item :content) "first (x)\n  \"Return"))
      (should (eq (plist-get item :type) :code))
      (should (eq (plist-get item :state) :fresh))
      (should (equal (contexture-test-metadata
                      item :filename :start-line :end-line :origin :language
                      :mode :buffer :modified)
                     (list (buffer-file-name) 3 4 :region "emacs-lisp-mode"
                           "emacs-lisp-mode" "a.el" nil))))))

(ert-deftest contexture-add-region-ending-at-a-line-start-takes-no-extra-line ()
  (contexture-tests--with-elisp
    (contexture-tests--region 3 5)
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content)
                     "(defun my-first (x)\n  \"Return X.\"\n"))
      (should (equal (contexture-test-metadata item :start-line :end-line) '(3 4))))))

(ert-deftest contexture-add-region-within-a-line-says-that-it-is-partial ()
  (contexture-tests--with-elisp
    (goto-char (point-min))
    (search-forward "my-first")
    (contexture-add-region (match-beginning 0) (match-end 0))
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content) "my-first"))
      (should (eq (car (contexture-test-metadata item :partial)) t)))))

(ert-deftest contexture-add-region-of-whole-lines-is-not-partial ()
  (contexture-tests--with-elisp
    (contexture-tests--region 3 5)
    (should-not (car (contexture-test-metadata (contexture-test-only-item) :partial)))))

(ert-deftest contexture-buffers-that-show-context-are-not-added ()
  (with-current-buffer (get-buffer-create "*contexture: preview*")
    (unwind-protect
        (progn (insert "text")
               (should-error (contexture-add-buffer) :type 'user-error))
      (kill-buffer))))

(ert-deftest contexture-add-region-of-one-empty-line ()
  (contexture-tests--with-elisp
    (contexture-tests--region 2 3)
    (should (equal (contexture-test-metadata (contexture-test-only-item)
                                             :start-line :end-line)
                   '(2 2)))))

(ert-deftest contexture-add-region-says-what-went-where ()
  (contexture-tests--with-elisp
    (make-directory ".git")
    (contexture-test-message
        "^Added a\\.el:3-5 to buffer a\\.el (1 item, [0-9]+ tokens)$"
      (contexture-tests--region 3 6))
    (contexture-test-message
        "^Added a\\.el:7 to buffer a\\.el (2 items, [0-9]+ tokens)$"
      (contexture-tests--region 7 8))))

(ert-deftest contexture-add-region-wants-a-region ()
  (with-temp-buffer
    (insert "text")
    (let ((transient-mark-mode t) (mark-active nil))
      (contexture-test-user-error "Mark a region first"
        (call-interactively #'contexture-add-region)))
    (contexture-test-user-error "empty"
      (contexture-add-region 2 2))))

(ert-deftest contexture-add-region-uses-the-marked-region ()
  (contexture-tests--with-elisp
    (let ((transient-mark-mode t))
      (goto-char (point-min))
      (set-mark (line-end-position))
      (activate-mark)
      (call-interactively #'contexture-add-region)
      (should deactivate-mark))
    (should (equal (plist-get (contexture-test-only-item) :content)
                   ";;; -*- lexical-binding: t -*-"))))

(ert-deftest contexture-add-region-sends-unsaved-text-and-marks-it ()
  (contexture-tests--with-elisp
    (goto-char (point-min))
    (insert "; not saved\n")
    (contexture-tests--region 1 2)
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content) "; not saved\n"))
      (should (equal (contexture-test-metadata item :modified) '(t))))))

(ert-deftest contexture-add-region-counts-lines-of-the-whole-buffer-when-narrowed ()
  (contexture-tests--with-elisp
    (narrow-to-region (contexture--line-position 3) (contexture--line-position 6))
    (contexture-tests--region 2 4)
    (should (equal (contexture-test-metadata (contexture-test-only-item)
                                             :start-line :end-line)
                   '(4 5)))))

(ert-deftest contexture-add-region-in-an-indirect-buffer ()
  (contexture-tests--with-elisp
    (let ((file (buffer-file-name)))
      (with-current-buffer (make-indirect-buffer (current-buffer) "indirect" t)
        (contexture-tests--region 3 6))
      (should (equal (contexture-test-metadata (contexture-test-only-item "a.el")
                                               :filename :buffer :start-line)
                     (list file "a.el" 3))))))

(ert-deftest contexture-add-region-leaves-text-properties-behind ()
  (contexture-test-with-server
    (with-temp-buffer
      (rename-buffer "properties" t)
      (insert (propertize "shown" 'face 'bold) (propertize "hidden" 'invisible t))
      (contexture-add-region (point-min) (point-max))
      (let ((item (contexture-test-only-item)))
        (should (equal-including-properties (plist-get item :content) "shownhidden"))
        (should (eq (plist-get item :type) :text))
        (should (equal (contexture-test-metadata item :filename :language)
                       '(nil nil)))))))

(ert-deftest contexture-add-region-says-how-many-characters-were-replaced ()
  (contexture-test-with-server
    (with-temp-buffer
      (insert "a" (unibyte-char-to-multibyte 255) "b")
      (contexture-test-message "Added .*; 1 character that is not text was replaced"
        (contexture-add-region (point-min) (point-max))))))

(ert-deftest contexture-add-region-tells-what-was-pushed-out ()
  (contexture-tests--with-elisp
    (contexture-request 'configure-manager '(:manager "a.el" :max-items 1))
    (contexture-tests--region 1 2)
    (contexture-test-message "(1 item, .*; the context is full, so the oldest item left it"
      (contexture-tests--region 3 6))))

(ert-deftest contexture-add-region-tells-what-the-server-refuses ()
  (contexture-tests--with-elisp
    (let ((contexture-context ""))
      (contexture-test-message "Nothing added to .*: "
        (contexture--add '(:content 3))))))

(ert-deftest contexture-add-region-knows-the-common-lisp-package ()
  (contexture-test-with-server
    (contexture-test-visiting
        (contexture-test-file "a.lisp" "(in-package #:my-package)" "(defun f ())"
                              "(cl:in-package \"OTHER\")" "(defun g ())")
      (contexture-tests--region 2 3)
      (contexture-tests--region 4 5)
      (should (equal (mapcar (lambda (item) (contexture-test-metadata item :package))
                             (contexture-test-items))
                     '(("my-package") ("OTHER")))))))

(ert-deftest contexture-add-region-works-with-odd-buffer-names ()
  (contexture-test-with-server
    (let ((name "odd \"name\" (with) \\ λ ; and\nmore"))
      (with-current-buffer (get-buffer-create name)
        (insert "x")
        (contexture-add-region 1 2)
        (should (equal (plist-get (contexture-test-only-item name) :content) "x"))))))

;;;; Buffers and definitions

(ert-deftest contexture-add-buffer-sends-all-of-it ()
  (contexture-tests--with-elisp
    (contexture-add-buffer)
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content) (buffer-string)))
      (should (equal (contexture-test-metadata item :origin :start-line :end-line)
                     '(:buffer nil nil))))))

(ert-deftest contexture-add-buffer-sends-what-is-visible-when-narrowed ()
  (contexture-tests--with-elisp
    (narrow-to-region (contexture--line-position 3) (contexture--line-position 6))
    (contexture-add-buffer)
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content)
                     "(defun my-first (x)\n  \"Return X.\"\n  x)\n"))
      (should (equal (contexture-test-metadata item :start-line :end-line) '(3 5))))))

(ert-deftest contexture-add-buffer-refuses-an-empty-one ()
  (with-temp-buffer
    (contexture-test-user-error "empty" (contexture-add-buffer))))

(ert-deftest contexture-add-defun-takes-the-definition-around-point ()
  (contexture-tests--with-elisp
    (goto-char (point-min))
    (search-forward "Return")
    (contexture-add-defun)
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content)
                     "(defun my-first (x)\n  \"Return X.\"\n  x)\n"))
      (should (equal (contexture-test-metadata item :origin :symbol :start-line :end-line)
                     '(:defun "my-first" 3 5))))))

(ert-deftest contexture-add-defun-in-python ()
  (contexture-test-with-server
    (contexture-test-visiting
        (contexture-test-file "a.py" "import os" "" "class A:" "    def f(self):"
                              "        return 1" "" "    def g(self):" "        return 2")
      (goto-char (point-min))
      (search-forward "return 1")
      (contexture-add-defun)
      (let ((item (contexture-test-only-item)))
        (should (equal (string-trim-right (plist-get item :content))
                       "    def f(self):\n        return 1"))
        (should (equal (contexture-test-metadata item :symbol :start-line)
                       '("A.f" 4)))))))

(ert-deftest contexture-add-defun-of-a-python-class-with-methods ()
  (contexture-test-with-server
    (contexture-test-visiting
        (contexture-test-file "a.py" "import os" "" "class A:" "    one = 1" ""
                              "    def f(self):" "        return 1" "" "x = 1")
      (contexture-test-user-error "no definition" (contexture-add-defun))
      (search-forward "class")
      (dolist (go (list #'ignore #'beginning-of-line #'forward-line))
        (funcall go)
        (contexture-add-defun)
        (should (equal (string-trim-right
                        (plist-get (car (last (contexture-test-items))) :content))
                       (concat "class A:\n    one = 1\n\n    def f(self):\n"
                               "        return 1"))))
      (goto-char (point-max))
      (contexture-test-user-error "no definition" (contexture-add-defun)))))

(ert-deftest contexture-add-defun-says-that-there-is-none ()
  (with-temp-buffer
    (insert "\n\n")
    (emacs-lisp-mode)
    (contexture-test-user-error "no definition" (contexture-add-defun))))

;;;; Files

(ert-deftest contexture-add-file-has-the-server-read-it ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "sub/b.py" "one = 1" "two = 2" "three = 3")))
      (make-directory ".git")
      (with-temp-buffer
        (rename-buffer "chat" t)
        (contexture-test-message "Added sub/b.py to buffer chat"
          (contexture-add-file file))
        (let ((item (contexture-test-only-item)))
          (should (equal (plist-get item :content) "one = 1\ntwo = 2\nthree = 3\n"))
          (should (eq (plist-get item :type) :file))
          (should (equal (contexture-test-metadata item :filename :origin)
                         (list file :file))))))))

(ert-deftest contexture-add-file-takes-lines ()
  (contexture-test-with-server
    (contexture-add-file (contexture-test-file "b.py" "1" "2" "3" "4") 2 3)
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content) "2\n3\n"))
      (should (equal (contexture-test-metadata item :start-line :end-line) '(2 3))))))

(ert-deftest contexture-add-file-tells-what-is-wrong ()
  (contexture-test-with-server
    (let ((file (contexture-test-file "b.py" "1")))
      (contexture-test-message "Nothing added to .*b\\.py.* 1 line"
        (contexture-add-file file 5 9))
      (contexture-test-message "Nothing added to .*no-such-file"
        (contexture-add-file (concat file "-no-such-file")))
      (contexture-test-user-error "is a directory"
        (contexture-add-file llm-ert-directory)))))

(ert-deftest contexture-add-file-takes-what-is-being-edited ()
  (contexture-tests--with-elisp
    (goto-char (point-max))
    (insert "; not saved\n")
    (narrow-to-region 1 2)
    (contexture-add-file (buffer-file-name) 7 8)
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content) "(defvar my-second 2)\n; not saved\n"))
      (should (equal (contexture-test-metadata item :origin :modified :start-line)
                     '(:file t 7))))))

(ert-deftest contexture-add-file-offers-this-buffers-file ()
  (contexture-tests--with-elisp
    (let (offered)
      (cl-letf (((symbol-function 'read-file-name)
                 (lambda (prompt _dir default &rest _)
                   (should (equal prompt "Add file (default a.el): "))
                   (setq offered default))))
        (call-interactively #'contexture-add-file))
      (should (equal offered (buffer-file-name)))
      (should (eq (plist-get (contexture-test-only-item) :type) :file)))))

(ert-deftest contexture-add-file-reads-remote-files-itself ()
  (contexture-test-with-mock-method
    (contexture-test-with-server
      (let ((file (concat "/mock::" (contexture-test-file "r.py" "1" "2" "3"))))
        (contexture-add-file file 2 3)
        (let ((item (contexture-test-only-item)))
          (should (equal (plist-get item :content) "2\n3\n"))
          (should (eq (plist-get item :type) :file))
          (should (equal (contexture-test-metadata item :filename :language :start-line)
                         (list (expand-file-name file) "python-mode" 2))))))))

(ert-deftest contexture-add-buffer-of-a-remote-file ()
  (contexture-test-with-mock-method
    (contexture-test-with-server
      (let ((file (concat "/mock::" (contexture-test-file "r.py" "1" "2" "3"))))
        (contexture-test-visiting file
          (cl-letf (((symbol-function 'project-current)
                     (lambda (&rest _) (ert-fail "searched a remote directory"))))
            (contexture-add-buffer))
          (should (equal (contexture-test-metadata (contexture-test-only-item)
                                                   :filename :project)
                         (list (expand-file-name file) nil))))))))

;;;; Symbols

(ert-deftest contexture-add-symbol-finds-it-in-this-buffer ()
  (contexture-tests--with-elisp
    (contexture-add-symbol "my-first")
    (let ((item (contexture-test-only-item)))
      (should (equal (plist-get item :content)
                     "(defun my-first (x)\n  \"Return X.\"\n  x)\n"))
      (should (equal (contexture-test-metadata item :origin :symbol :start-line)
                     '(:symbol "my-first" 3))))))

(ert-deftest contexture-add-symbol-finds-what-emacs-knows ()
  (contexture-tests--with-elisp
    (let ((buffers (buffer-list)))
      (contexture-add-symbol "contexture-add-region")
      (should-not (cl-remove-if (lambda (buffer)
                                  (string-prefix-p " " (buffer-name buffer)))
                                (cl-set-difference
                                 (cl-remove-if-not #'buffer-file-name (buffer-list))
                                 buffers))))
    (let ((item (contexture-test-only-item)))
      (should (string-prefix-p "(defun contexture-add-region (beg end"
                               (plist-get item :content)))
      (should (equal (find-library-name "contexture") ; wherever it was put
                     (car (contexture-test-metadata item :filename))))
      (should (string-prefix-p "Add the text between BEG and END"
                               (car (contexture-test-metadata item :docstring)))))))

(ert-deftest contexture-add-symbol-leaves-point-where-it-is ()
  (contexture-test-with-server
    (let ((file (locate-library "contexture-sources.el")))
      (contexture-test-visiting file
        (dolist (from (list (point-min) (point-max)))
          (goto-char from)
          (contexture-add-symbol "contexture-add-symbol")
          (should (= (point) from)))
        (with-temp-buffer
          (emacs-lisp-mode)
          (contexture-add-symbol "contexture-add-symbol"))
        (should (= (point) (point-max)))))))

(ert-deftest contexture-add-symbol-works-outside-of-lisp-buffers ()
  (contexture-test-with-server
    (with-temp-buffer
      (rename-buffer "notes" t)
      (text-mode)
      (contexture-add-symbol "contexture-add-to")
      (should (string-prefix-p "(defcustom contexture-add-to"
                               (plist-get (contexture-test-only-item) :content))))))

(ert-deftest contexture-add-symbol-finds-it-by-imenu ()
  (contexture-test-with-server
    (contexture-test-visiting
        (contexture-test-file "a.c" "int x;" "" "static int my_c_function(int a)" "{"
                              "  return a;" "}")
      (contexture-add-symbol "my_c_function")
      (should (equal (string-trim (plist-get (contexture-test-only-item) :content))
                     "static int my_c_function(int a)\n{\n  return a;\n}")))))

(ert-deftest contexture-add-symbol-finds-it-in-closed-files-of-the-project ()
  (contexture-test-with-server
    (make-directory "lib")
    (contexture-test-file "lib/a.el" ";; total-of, used" "" "(defun total-of (x)" "  (car x))")
    (contexture-test-file "lib/b.c" "int total_of(int x);" "int total_of(int x)" "{"
                          "  return x;" "}")
    (contexture-test-file "c.py" "def shared(x):" "    return x")
    (contexture-test-file "d.py" "def shared(x):" "    return 2 * x")
    (contexture-test-visiting (contexture-test-file "lib/use.el" "(total-of '(1))")
      (contexture-test-user-error "No definition" (contexture-add-symbol "total-of")))
    (let* ((root default-directory)
           (project-find-functions (list (lambda (_) (cons 'transient root)))))
      (contexture-test-visiting (expand-file-name "lib/use.el")
        (contexture-add-symbol "total-of")
        (contexture-add-symbol "total_of")
        (cl-letf (((symbol-function 'completing-read)
                   (lambda (_prompt choices &rest _)
                     (should (equal (sort (mapcar #'car choices) #'string<)
                                    '("c.py:1: def shared(x):" "d.py:1: def shared(x):")))
                     "d.py:1: def shared(x):")))
          (contexture-add-symbol "shared"))
        (should (equal (mapcar (lambda (item) (string-trim (plist-get item :content)))
                               (contexture-test-items))
                       '("(defun total-of (x)\n  (car x))"
                         "int total_of(int x)\n{\n  return x;\n}"
                         "def shared(x):\n    return 2 * x")))
        (contexture-test-user-error "No definition" (contexture-add-symbol "total"))
        (should-not (find-buffer-visiting "lib/a.el"))))))

(ert-deftest contexture-add-symbol-searches-files-without-blocking-emacs ()
  (skip-unless (executable-find "mkfifo"))
  (contexture-test-in-directory
   (lambda ()
     (let ((stuck (expand-file-name "stuck"))
           (slow (contexture-test-file "bin/grep" "#!/bin/sh" "exec sleep 9"))
           said)
       (call-process "mkfifo" nil nil nil stuck)
       ;; What is no regular file is not read at all.
       (should-not (with-timeout (9 'ended) (contexture-symbol--grep "total" (list stuck))))
       (set-file-modes slow #o700)
       (cl-letf (((symbol-function 'message)
                  (lambda (format &rest args)
                    (when format (push (apply #'format format args) said))))
                 (process-environment
                  (cons (format "PATH=%s:%s" (expand-file-name "bin") (getenv "PATH"))
                        process-environment)))
         ;; The time-out comes from a timer: Emacs runs it while grep waits.
         (should (eq 'ended (with-timeout (0.3 'ended)
                              (contexture-symbol--grep "total" (list stuck))))))
       (should (string-match-p "\\`Looking for total in 1 file of the project" (car said)))
       (should-not (cl-find-if (lambda (process)
                                 (string-prefix-p "contexture grep" (process-name process)))
                               (process-list)))))))

(ert-deftest contexture-functions-are-there-in-a-fresh-emacs ()
  "What the package passes on as a function is loaded, not only known when it is compiled."
  (let ((names '(string-blank-p string-empty-p string-trim string-join string-remove-prefix)))
    (should (equal 0 (call-process
                      (expand-file-name invocation-name invocation-directory) nil nil nil
                      "-Q" "--batch" "-L" (file-name-directory (locate-library "contexture"))
                      "-l" "contexture" "--eval"
                      (format "(kill-emacs (if (seq-every-p #'fboundp '%S) 0 1))" names))))))

(ert-deftest contexture-add-symbol-offers-the-one-at-point ()
  (contexture-tests--with-elisp
    (goto-char (point-max))
    (search-backward "my-second")
    (cl-letf (((symbol-function 'completing-read)
               (lambda (_prompt table &rest args)
                 (should (test-completion "car" table))
                 (nth 4 args))))
      (call-interactively #'contexture-add-symbol))
    (should (equal (plist-get (contexture-test-only-item) :content)
                   "(defvar my-second 2)\n"))))

(ert-deftest contexture-add-symbol-completes-what-open-files-define ()
  (contexture-test-with-server
    (let ((loaded (contexture-test-file "open.el" "(defun my-open--trim-prefix (x)" "  x)"))
          (here (contexture-test-file "here.el" "(defun my-here () nil)"))
          (python (contexture-test-file "code.py" "def my_total(x):" "    return x")))
      (contexture-test-visiting loaded)
      (dolist (file (list here python))
        (contexture-test-visiting file
          (switch-to-buffer (current-buffer))
          (local-set-key [f5] #'contexture-add-symbol)
          (contexture-test-message "^Added my-open--trim-prefix\\|^Added .*open\\.el"
            (execute-kbd-macro (vconcat [f5] (kbd "my-open--trim-pre TAB RET"))))))
      (contexture-test-visiting here
        (should (test-completion "contexture-add-symbol" (contexture-symbol--table)))
        (switch-to-buffer (current-buffer))
        (let (said)
          (cl-letf (((symbol-function 'minibuffer-message) (lambda (text &rest _) (push text said))))
            (contexture-test-user-error "No definition of no-such-one was found"
              (execute-kbd-macro (vconcat [f5] (kbd "no-such-one TAB RET")))))
          (should (equal said '("No open file has such a symbol; RET searches the project"))))))))

(ert-deftest contexture-add-symbol-tells-why-it-found-nothing ()
  (contexture-tests--with-elisp
    (contexture-test-user-error "No definition of no-such-symbol"
      (contexture-add-symbol "no-such-symbol"))
    (contexture-test-user-error "No symbol" (contexture-add-symbol ""))
    (unless find-function-C-source-directory
      (contexture-test-user-error "car is written in C" (contexture-add-symbol "car"))
      (contexture-test-user-error "fill-column is written in C"
        (contexture-add-symbol "fill-column")))))

;;;; Which context

(ert-deftest contexture-scope-chooses-the-context ()
  (contexture-tests--with-elisp
    (make-directory ".git")
    (pcase-dolist (`(,scope ,manager ,label)
                   `((buffer ,(concat "file:" (file-truename llm-ert-directory)
                                      "a.el")
                             "file a.el")
                     (shared "*shared*" "the shared context")
                     (project ,(concat "project:" (file-truename llm-ert-directory))
                              ,(concat "project " (file-name-nondirectory
                                                   (directory-file-name
                                                    llm-ert-directory))))
                     (,(lambda () "mine") "mine" "mine")))
      (let ((contexture-add-to scope))
        (should (equal (contexture-adding-context) manager))
        (contexture-test-message
            (concat "^Added a.el:1 to " (regexp-quote label) " (1 item")
          (contexture-tests--region 1 2))
        (contexture-test-only-item manager)))))

(ert-deftest contexture-scope-without-a-project-is-the-folder ()
  (contexture-tests--with-elisp
    (let ((contexture-add-to 'project))
      (should (equal (contexture-adding-context)
                     (concat "project:" (file-truename llm-ert-directory)))))))

(ert-deftest contexture-scope-of-the-minibuffer-is-that-of-its-buffer ()
  (with-temp-buffer
    (rename-buffer "asking" t)
    (setq contexture-context "asking")
    (save-window-excursion
      (switch-to-buffer (current-buffer))
      (cl-letf (((symbol-function 'minibuffer-selected-window) #'selected-window))
        (with-current-buffer (window-buffer (minibuffer-window))
          (should (equal (contexture-adding-context) "asking")))))))

(ert-deftest contexture-manager-overrides-the-scope ()
  (contexture-tests--with-elisp
    (setq contexture-context "special")
    (contexture-tests--region 1 2)
    (contexture-test-only-item "special")))

;;;; Clear and undo

(ert-deftest contexture-clear-can-be-undone ()
  (contexture-tests--with-elisp
    (contexture-tests--region 1 2)
    (contexture-tests--region 3 6)
    (contexture-test-message
        "^Removed 2 items from buffer a.el; M-x contexture-undo undoes it"
      (contexture-clear))
    (should-not (contexture-test-items))
    (contexture-test-message "^Undid the clearing in buffer a.el (2 items, "
      (contexture-undo))
    (should (= (length (contexture-test-items)) 2))))

(ert-deftest contexture-clear-of-nothing-says-so ()
  (contexture-tests--with-elisp
    (contexture-test-message "^Buffer a.el has no items$" (contexture-clear))))

(ert-deftest contexture-undo-goes-back-step-by-step ()
  (contexture-tests--with-elisp
    (contexture-tests--region 1 2)
    (contexture-tests--region 3 6)
    (contexture-undo)
    (contexture-test-only-item)
    (contexture-undo)
    (should-not (contexture-test-items))
    (contexture-test-message "^Contexture: .*nothing" (contexture-undo))))

;; Undo names what it undoes, redo brings it back, and a new change forgets it.
(ert-deftest contexture-redo-brings-back-what-was-undone ()
  (contexture-tests--with-elisp
    (contexture-test-message "^Contexture: nothing to redo in buffer a.el: " (contexture-redo))
    (contexture-test-message "^Contexture: nothing to undo in buffer a.el$" (contexture-undo))
    (contexture-tests--region 3 6)
    (contexture-test-only-item)
    (contexture-test-message
        (concat "^Undid an addition of .*a.el:3-5 in buffer a.el (0 items, 0 tokens);"
                " M-x contexture-redo redoes it")
      (contexture-undo))
    (contexture-test-message
        (concat "^Redid an addition of .*a.el:3-5 in buffer a.el (1 item, [0-9]+ tokens);"
                " M-x contexture-undo undoes it")
      (contexture-redo))
    (contexture-test-only-item)
    (contexture-undo)
    (contexture-tests--region 1 2)
    (contexture-test-message "^Contexture: nothing to redo" (contexture-redo))
    (contexture-test-only-item)))

;;;; Using it

(defun contexture-tests--markdown ()
  "Return the Markdown of lines 3 to 5 of the small file."
  "## Context\n\n### Code (from a.el:3-5)\n```elisp
(defun my-first (x)\n  \"Return X.\"\n  x)\n```\n\n")

(defmacro contexture-tests--with-item (&rest body)
  "Run BODY in a buffer whose context has one item."
  (declare (indent 0) (debug t))
  `(contexture-tests--with-elisp
     (make-directory ".git")
     (contexture-tests--region 3 6)
     (contexture-test-only-item)
     ,@body))

(ert-deftest contexture-copy-puts-markdown-on-the-kill-ring ()
  (contexture-tests--with-item
    (call-interactively #'contexture-copy)
    (should (equal (car kill-ring) (contexture-tests--markdown)))))

(ert-deftest contexture-copy-knows-other-formats ()
  (contexture-tests--with-item
    (let ((contexture-format 'org))
      (call-interactively #'contexture-copy)
      (should (string-search "#+begin_src" (car kill-ring)))
      (should-not (equal (car kill-ring) (contexture-tests--markdown))))))

(ert-deftest contexture-copy-and-preview-keep-to-the-budget ()
  (contexture-tests--with-item
    (contexture-tests--region 7 8)
    (let ((contexture-limit 40)
          (size "\\([0-9]+\\) tokens with headings; 1 left out to fit the limit"))
      (let ((message (contexture-test-message (concat "^Copied .*(" size ")")
                       (call-interactively #'contexture-copy))))
        (string-match size message)
        (should (<= (string-to-number (match-string 1 message)) 40)))
      (should (string-search "my-second" (car kill-ring)))
      (should-not (string-search "my-first" (car kill-ring)))
      (save-current-buffer (call-interactively #'contexture-preview))
      (with-current-buffer contexture-preview-buffer
        (should (equal (buffer-string) (car kill-ring)))
        (should (string-match-p size header-line-format))
        (let ((contexture-limit nil)) (revert-buffer))
        (should (string-search "my-first" (buffer-string)))
        (should-not (string-search "left out" header-line-format))))))

(ert-deftest contexture-copy-counts-no-covered-item-as-left-out ()
  (contexture-tests--with-item
    (contexture-add-buffer)
    (contexture-test-message "^Copied the context of buffer a.el ([0-9]+ tokens with headings)$"
      (call-interactively #'contexture-copy))
    (should (= (length (contexture-test-items)) 2))))

(ert-deftest contexture-insert-inserts-markdown ()
  (contexture-tests--with-item
    (goto-char (point-max))
    (contexture-test-message "^Inserted the context of buffer a.el ([0-9]+ tokens with headings)"
      (call-interactively #'contexture-insert))
    (should (string-suffix-p (contexture-tests--markdown) (buffer-string)))))

(ert-deftest contexture-insert-offers-another-context-when-this-is-empty ()
  (contexture-tests--with-item
    (with-temp-buffer
      (let (offered)
        (cl-letf (((symbol-function 'completing-read)
                   (lambda (_prompt names &rest args)
                     (setq offered names)
                     (nth 4 args))))
          (call-interactively #'contexture-insert))
        (should (equal offered '("a.el")))
        (should (equal (buffer-string) (contexture-tests--markdown)))))))

(ert-deftest contexture-insert-says-that-there-is-nothing ()
  (contexture-test-with-server
    (with-temp-buffer
      (contexture-test-user-error "add something first"
        (call-interactively #'contexture-insert))
      (setq buffer-read-only t)
      (should-error (call-interactively #'contexture-insert)
                    :type 'buffer-read-only))))

(ert-deftest contexture-preview-shows-exactly-what-the-model-gets ()
  (contexture-tests--with-item
    (save-current-buffer (call-interactively #'contexture-preview))
    (with-current-buffer contexture-preview-buffer
      (should (equal (buffer-string) (contexture-tests--markdown)))
      (should buffer-read-only)
      (should-not (buffer-modified-p))
      (should (string-match-p "Buffer a.el, [0-9]+ tokens" header-line-format)))
    (contexture-tests--region 7 8)
    (with-current-buffer contexture-preview-buffer
      (revert-buffer)
      (should (string-match-p "my-second" (buffer-string))))))

(ert-deftest contexture-copy-turns-the-servers-error-into-the-users ()
  (contexture-tests--with-item
    (contexture-test-user-error "Contexture: "
      (contexture--ask 'context-to-string '(:limit -1)))))

;;;; Keys and mode

(ert-deftest contexture-command-map-has-every-command ()
  (dolist (command '(contexture-add-region contexture-add-buffer
                     contexture-add-defun contexture-add-file
                     contexture-add-symbol contexture-clear contexture-undo
                     contexture-list contexture-preview contexture-copy
                     contexture-insert))
    (should (commandp command))
    (should (where-is-internal command contexture-command-map)))
  (should (keymapp 'contexture-command-map)))

(ert-deftest contexture-mode-shows-the-number-of-items ()
  (contexture-tests--with-elisp
    (contexture-mode)
    (should (equal (contexture--lighter) " ctx"))
    (contexture-tests--region 1 2)
    (llm-ert-wait-for (string-prefix-p " ctx:1/" (contexture--lighter)))
    (contexture-request 'add-context (list :manager (contexture-adding-context)
                                            :content "from elsewhere"))
    (llm-ert-wait-for (string-prefix-p " ctx:2/" (contexture--lighter)))
    (contexture-mode -1)))

(ert-deftest contexture-mode-believes-the-newest-size-whatever-arrives-last ()
  (contexture-tests--with-elisp
    (contexture-mode)
    (contexture-tests--region 1 2)
    (llm-ert-wait-for (string-prefix-p " ctx:1/" (contexture--lighter)))
    (let* ((manager (contexture-adding-context))
           (first (nth 2 (gethash manager contexture--totals))))
      (contexture-request 'add-context (list :manager manager :content "more"))
      (llm-ert-wait-for (string-prefix-p " ctx:2/" (contexture--lighter)))
      (contexture--note-totals manager `(:count 1 :tokens 1 :version ,first)) ; a late answer
      (should (string-prefix-p " ctx:2/" (contexture--lighter))))
    (contexture-mode -1)))

(ert-deftest contexture-mode-knows-what-is-there-already ()
  (contexture-tests--with-item
    (clrhash contexture--totals)
    (contexture-mode)
    (llm-ert-wait-for (string-prefix-p " ctx:1/" (contexture--lighter)))))

(ert-deftest contexture-mode-leaves-nothing-behind ()
  (contexture-test-with-server
    (cl-flet ((state () (list contexture-notification-functions
                              contexture-connected-hook
                              kill-buffer-hook
                              timer-list (process-list)
                              contexture--connection)))
      (let ((before (state)) first second)
        (setq first (generate-new-buffer "first")
              second (generate-new-buffer "second"))
        (with-current-buffer first (contexture-mode))
        (with-current-buffer second (contexture-mode))
        (should (equal (nthcdr 3 (state)) (nthcdr 3 before)))
        (with-current-buffer first
          (contexture-mode -1)
          (should-not (local-variable-p 'kill-buffer-hook)))
        (should-not (equal (state) before))
        (kill-buffer second)
        (should (equal (state) before))))))

(ert-deftest contexture-mode-asks-no-version-control-in-the-mode-line ()
  (contexture-tests--with-elisp
    (let ((contexture-add-to 'project))
      (cl-letf (((symbol-function 'project-current)
                 (lambda (&rest _) (ert-fail "asked"))))
        (should (equal (contexture--lighter) " ctx"))))))

(provide 'contexture-tests)
;;; contexture-tests.el ends here
