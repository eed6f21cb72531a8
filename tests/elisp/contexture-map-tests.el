;;; contexture-map-tests.el --- Tests of the map of a project  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-map)

(defmacro contexture-map-tests--in-project (&rest body)
  "Run BODY in a project with two files, in a buffer that visits a.el."
  (declare (indent 0) (debug t))
  `(contexture-test-with-server
     (make-directory ".git")
     (contexture-test-file "b.el" "" "(defun map-beta () 1)" "(provide 'b)")
     (save-window-excursion
       (contexture-test-visiting (contexture-test-file "a.el" "(defun map-alpha () (map-beta))")
         (clrhash contexture--project-roots)
         ,@body))))

(defun contexture-map-tests--text ()
  "Return what the map shows."
  (with-current-buffer contexture-map-buffer
    (buffer-substring-no-properties (point-min) (point-max))))

(defmacro contexture-map-tests--shows (regexp)
  "Wait until the map shows what REGEXP matches."
  `(llm-ert-wait-for
       (string-match-p ,regexp (contexture-map-tests--text))
     :message (concat "not shown: " ,regexp)))

(ert-deftest contexture-map-shows-what-belongs-to-the-file ()
  (contexture-map-tests--in-project
    (contexture-map)
    (contexture-map-tests--shows "^b\\.el\n +2 (defun map-beta ()\n")
    (should-not (string-match-p "^a\\.el" (contexture-map-tests--text)))
    (with-current-buffer contexture-map-buffer
      (should (string-match-p "1 of 2 files" header-line-format))
      (goto-char (point-min))
      (contexture-map-toggle)
      (should (outline-invisible-p (line-end-position)))
      (contexture-map-toggle-all)
      (should-not (outline-invisible-p (line-end-position)))
      (forward-line 1)
      (contexture-map-visit))
    (should (equal (file-name-nondirectory (buffer-file-name (window-buffer))) "b.el"))
    (with-current-buffer (window-buffer)
      (should (looking-at-p "(defun map-beta"))
      (kill-buffer))))

(ert-deftest contexture-map-adds-definitions-and-itself ()
  (contexture-map-tests--in-project
    (contexture-map)
    (contexture-map-tests--shows "map-beta")
    (with-current-buffer contexture-map-buffer
      (goto-char (point-min))
      (forward-line 1)
      (contexture-test-message "^Added .*b\\.el:2"
        (contexture-map-add)))
    (contexture-add-map)
    (llm-ert-wait-for (= 2 (length (contexture-test-items))))
    (let ((contents (mapcar (lambda (item) (plist-get item :content)) (contexture-test-items))))
      (should (member "(defun map-beta () 1)" (mapcar #'string-trim contents)))
      (should (cl-some (lambda (content) (string-prefix-p "b.el\n" content)) contents)))))

(ert-deftest contexture-map-counts-unsaved-buffers ()
  (contexture-map-tests--in-project
    (let ((other (find-file-noselect "b.el")))
      (unwind-protect
          (progn
            (with-current-buffer other
              (goto-char (point-max))
              (insert "(defun map-unsaved () 2)\n"))
            (contexture-map)
            (contexture-map-tests--shows "4 (defun map-unsaved ()"))
        (with-current-buffer other
          (set-buffer-modified-p nil)
          (kill-buffer))))))

(ert-deftest contexture-map-takes-no-name-out-of-the-project ()
  (contexture-map-tests--in-project
    (contexture-map)
    (contexture-map-tests--shows "map-beta")
    (with-current-buffer contexture-map-buffer
      (dolist (path '("../../../../etc/passwd" "/etc/passwd" "/ssh:x@localhost:/y" "a\C-hb"))
        (let ((inhibit-read-only t))
          (erase-buffer)
          (contexture-map--insert (list :path path :known :whole)))
        (goto-char (point-min))
        (should-error (contexture-map-visit) :type 'user-error)
        (should-error (contexture-map-add) :type 'user-error)))))

(ert-deftest contexture-map-shows-short-lines-and-leaves-out-what-is-none ()
  (let ((long (make-string 200000 ?x)))
    (with-temp-buffer
      (dolist (entry `((:path ,long :known :whole
                              :definitions ((:line 1 :end-line 2 :signature ,long)
                                            (:line "1" :end-line 2 :signature "s")
                                            (:line 3 :end-line 4 :signature 5)
                                            5))
                       (:path 5 :known :whole :definitions nil)
                       (:path "a.el" :known 5 :definitions 5)
                       (:path "b.el" :known ,(intern (concat ":" long)) :definitions nil)
                       (:known :whole)))
        (contexture-map--insert entry))
      (should (< (buffer-size) 3000))
      (should (equal (count-lines (point-min) (point-max)) 5))
      (should (string-search "a.el\n" (buffer-string)))
      (goto-char (point-min))
      (should (equal (contexture-map--at-point) (list long nil nil))))))

(provide 'contexture-map-tests)

;;; contexture-map-tests.el ends here
